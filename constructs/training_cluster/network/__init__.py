"""The VPC, its subnets, endpoints and security group."""
