"""Entries hashed into a few buckets, of which one is sent: Collision and CoCo."""
