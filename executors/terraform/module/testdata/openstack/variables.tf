# Given by Theseus, and by nobody else.
variable "machines" {
  description = "Machine name to what was asked for. Theseus adds a key, flips serving, removes a key; nothing else ever changes."
  type = map(object({
    role               = string # control-plane or worker
    pool               = string # control-plane, or the worker pool's name
    kubernetes_version = string # v1.37.2
    image              = string # the resolved id
    failure_domain     = string # "" when none
    created            = string # RFC 3339, set once
    serving            = bool   # wanted behind the API endpoint
    values             = map(string)
  }))
  nullable = false
  validation {
    condition     = length(var.machines) > 0
    error_message = "An empty map would destroy every machine. Print the present map with: theseus machines CLUSTER -o tfvars"
  }
}

variable "bootstrap" {
  description = "Machine name to user data, only while that machine is created."
  type        = map(string)
  default     = {}
  sensitive   = true
}

# Yours. Their values are in a var file that spec.terraform.varFiles names.
variable "cluster" { type = string }
variable "network_id" { type = string }
variable "subnet_id" { type = string }
variable "security_group_ids" { type = list(string) }
