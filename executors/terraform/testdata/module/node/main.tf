variable "registry" {
  type = string
}

resource "terraform_data" "vm" {
  input = var.registry
}

output "id" {
  value = terraform_data.vm.id
}
