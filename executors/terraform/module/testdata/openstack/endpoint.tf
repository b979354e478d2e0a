# The endpoint outlives every machine.
resource "openstack_lb_loadbalancer_v2" "api" {
  name          = "${var.cluster}-api"
  vip_subnet_id = var.subnet_id
}

resource "openstack_lb_listener_v2" "api" {
  name            = "${var.cluster}-api"
  protocol        = "TCP"
  protocol_port   = 6443
  loadbalancer_id = openstack_lb_loadbalancer_v2.api.id
}

resource "openstack_lb_pool_v2" "api" {
  name        = "${var.cluster}-api"
  protocol    = "TCP"
  lb_method   = "ROUND_ROBIN"
  listener_id = openstack_lb_listener_v2.api.id
}

resource "openstack_lb_monitor_v2" "api" {
  pool_id        = openstack_lb_pool_v2.api.id
  type           = "HTTPS"
  url_path       = "/readyz"
  expected_codes = "200"
  delay          = 5
  timeout        = 3
  max_retries    = 2
}

# One member for each control-plane machine that serves: made after the machine has joined, gone before it is drained.
resource "openstack_lb_member_v2" "api" {
  for_each      = { for name, m in var.machines : name => m if m.role == "control-plane" && m.serving }
  name          = each.key
  pool_id       = openstack_lb_pool_v2.api.id
  address       = openstack_networking_port_v2.machine[each.key].all_fixed_ips[0]
  protocol_port = 6443
  subnet_id     = var.subnet_id
}
