"""Tables in a content: where they are, what their logs say, and how a content takes a change of one."""
