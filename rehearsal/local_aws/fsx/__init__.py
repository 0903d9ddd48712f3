"""FSx for Lustre: file systems and data repository associations."""
