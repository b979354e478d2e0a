# The registry: what was asked for. All that a machine has depends on it.
resource "terraform_data" "machine" {
  for_each = var.machines
  input    = each.value
}

resource "openstack_networking_port_v2" "machine" {
  for_each           = var.machines
  name               = each.key
  network_id         = var.network_id
  security_group_ids = var.security_group_ids
  fixed_ip {
    subnet_id = var.subnet_id
  }
  depends_on = [terraform_data.machine]
}

resource "openstack_compute_instance_v2" "machine" {
  for_each          = var.machines
  name              = each.key
  image_id          = each.value.image
  flavor_name       = lookup(each.value.values, "flavor", "m1.large")
  availability_zone = each.value.failure_domain == "" ? null : each.value.failure_domain
  config_drive      = true
  user_data         = lookup(var.bootstrap, each.key, "")
  network {
    port = openstack_networking_port_v2.machine[each.key].id
  }
  lifecycle {
    ignore_changes = [user_data]
  }
}
