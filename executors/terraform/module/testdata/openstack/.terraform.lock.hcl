provider "registry.terraform.io/terraform-provider-openstack/openstack" {
  version     = "3.3.2"
  constraints = "~> 3.3"
}
