variable "machines" {
  type = map(object({
    role               = string
    pool               = string
    kubernetes_version = string
    image              = string
    failure_domain     = string
    created            = string
    serving            = bool
    values             = map(string)
  }))
  nullable = false
  validation {
    condition     = length(var.machines) > 0
    error_message = "An empty map would destroy the cluster."
  }
}

variable "bootstrap" {
  type      = map(string)
  default   = {}
  sensitive = true
}

resource "terraform_data" "machine" {
  for_each = var.machines
  input    = each.value
}

resource "terraform_data" "vm" {
  for_each = var.machines
  input = {
    registry  = terraform_data.machine[each.key].id
    user_data = lookup(var.bootstrap, each.key, "")
  }
  lifecycle {
    ignore_changes = [input]
  }
}

resource "terraform_data" "member" {
  for_each = { for name, m in var.machines : name => m if m.serving }
  input    = terraform_data.vm[each.key].id
}

output "theseus" {
  value = {
    contract         = 1
    cluster          = "c"
    endpoint         = "10.0.0.100:6443"
    acts_on_serving  = true
    machines         = { for name, m in var.machines : name => { hostname = name, addresses = ["10.0.0.${split("-", name)[2]}"], provider_id = "lab://${terraform_data.vm[name].id}" } }
    shared_addresses = ["terraform_data.member", "terraform_data.pool"]
  }
}
