terraform {
  required_version = ">= 1.10"
  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = "~> 3.3"
    }
  }
  # Any backend that locks. One state for each cluster.
  backend "s3" {
    bucket       = "terraform-states"
    key          = "seed-eu-1"
    region       = "eu"
    use_lockfile = true
  }
}
