"""Where the local AWS reaches into ministack and moto.

Imported by: rehearsal.
"""
