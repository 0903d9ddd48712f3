"""EC2: reservations, images, placement groups, load balancers and scaling groups."""
