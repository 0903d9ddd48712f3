"""`trainctl preflight`: whether a deploy with these flags would work; changes nothing."""
