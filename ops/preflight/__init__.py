"""`trainctl preflight`: whether a deploy with these flags would work; changes nothing.

Imported by: ops.commands, ops.price, ops.verify, rehearsal.
"""
