"""`make preflight`: whether the account has what a deploy with these flags needs; changes nothing."""
