"""Writes: incoming rows -> checked -> conformed -> stored as data files of new fragments -> committed."""
