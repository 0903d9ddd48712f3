"""`trainctl capacity`: where nodes can be had, when, for how much, and the flags to type."""
