"""Faults: AWS answers badly, a head node fails, a Lambda dies; nothing of ours may be stranded or lost.

Imported by: rehearsal.__main__.
"""
