"""Stores: which store a URI means, the base paths mounted in it, and which storage options a pickle carries."""
