"""Small CDK apps to compare ours with."""
