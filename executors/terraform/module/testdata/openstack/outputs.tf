output "theseus" {
  value = {
    contract        = 1
    cluster         = var.cluster
    endpoint        = "${openstack_lb_loadbalancer_v2.api.vip_address}:6443"
    acts_on_serving = true
    machines = { for name, m in var.machines : name => {
      hostname    = name
      addresses   = openstack_networking_port_v2.machine[name].all_fixed_ips
      provider_id = "openstack:///${openstack_compute_instance_v2.machine[name].id}"
    } }
    # The members are the machines' own, but come and go with serving: they are the endpoint's.
    shared_addresses = ["openstack_lb_member_v2.api"]
  }
}
