"""The bucket, FSx for Lustre, EFS and the accounting database."""
