# A root module for machines of the lab (test/lab), and the smallest that keeps to the contract: docs/terraform-contract.md.
# It needs no provider: terraform_data and local-exec are built in, and curl asks the lab's service.

terraform {
  required_version = ">= 1.4"
  # The lab's service keeps the state and its lock. Where it is differs from lab to lab, so it comes from
  # spec.terraform.backendConfig: address, lock_address and unlock_address, all three http://GATEWAY:7070/state/CLUSTER.
  backend "http" {}
}

variable "machines" {
  description = "Machine name to what was asked for. Given by Theseus."
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
    error_message = "An empty map would destroy every machine. Print the present map with: theseus machines CLUSTER -o tfvars"
  }
}

variable "bootstrap" {
  description = "Machine name to user data, only while that machine is created. Given by Theseus."
  type        = map(string)
  default     = {}
  sensitive   = true
}

variable "cluster" {
  description = "The cluster's name, as in its spec."
  type        = string
}

variable "service" {
  description = "URL of the lab's service: http://GATEWAY:7070."
  type        = string
}

variable "endpoint" {
  description = "Address of the lab's load balancer: GATEWAY:6443."
  type        = string
}

variable "acts_on_serving" {
  description = "false: every machine is behind the load balancer from its start, which finds out by itself which of them serve."
  type        = bool
  default     = true
}

# The registry: what was asked for.
resource "terraform_data" "machine" {
  for_each = var.machines
  input    = each.value
}

# The machine itself. Theseus gives user data once, so later changes of input are ignored.
resource "terraform_data" "server" {
  for_each = var.machines
  input = {
    url  = "${var.service}/machines/${each.key}"
    body = jsonencode({ image = each.value.image, userData = lookup(var.bootstrap, each.key, "") })
  }
  depends_on = [terraform_data.machine]

  lifecycle {
    ignore_changes = [input]
  }

  # The same request again finds the machine made: an apply that was cut off can be repeated.
  provisioner "local-exec" {
    command     = "printf %s \"$BODY\" | curl --fail-with-body -sS -X PUT --data-binary @- \"$URL\""
    environment = { URL = self.input.url, BODY = self.input.body }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "curl --fail-with-body -sS -X DELETE \"$URL\""
    environment = { URL = self.input.url }
  }
}

# A machine's place behind the endpoint: taken once it has joined, given up before it goes.
resource "terraform_data" "endpoint" {
  for_each = { for name, m in var.machines : name => m if m.role == "control-plane" && (m.serving || !var.acts_on_serving) }
  input = {
    url    = "${var.service}/endpoint/${each.key}"
    server = terraform_data.server[each.key].id # so that it is taken after, and given up before
  }

  provisioner "local-exec" {
    command     = "curl --fail-with-body -sS -X PUT \"$URL\""
    environment = { URL = self.input.url }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "curl --fail-with-body -sS -X DELETE \"$URL\""
    environment = { URL = self.input.url }
  }
}

output "theseus" {
  value = {
    contract        = 1
    cluster         = var.cluster
    endpoint        = var.endpoint
    acts_on_serving = var.acts_on_serving
    # The lab gives addresses when a machine is made, and terraform_data has no way to keep them: Nodes are matched by name.
    machines = { for name, m in var.machines : name => { hostname = name, addresses = [], provider_id = "" } }
    # What a machine has of the endpoint may come and go with serving, and nothing else of it.
    shared_addresses = ["terraform_data.endpoint"]
  }
}
