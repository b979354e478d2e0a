// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/theseus-gitops/theseus/reconcile/spec"
)

// Code names a rule. Codes are stable: people search for them and silence them.
type Code string

// The codes, in the order of the contract's document.
const (
	MachinesMissing    Code = "machines-missing"
	MachinesType       Code = "machines-type"
	MachinesDefault    Code = "machines-default"
	MachinesNullable   Code = "machines-nullable"
	MachinesValidation Code = "machines-validation"
	ValidationUnclear  Code = "machines-validation-unclear"
	BootstrapMissing   Code = "bootstrap-missing"
	BootstrapType      Code = "bootstrap-type"
	BootstrapSensitive Code = "bootstrap-sensitive"
	BootstrapDefault   Code = "bootstrap-default"
	BootstrapUnused    Code = "bootstrap-unused"
	BootstrapLookup    Code = "bootstrap-lookup"
	BootstrapForEach   Code = "bootstrap-for-each"
	BootstrapOutput    Code = "bootstrap-output"

	RegistryMissing    Code = "registry-missing"
	RegistryForEach    Code = "registry-for-each"
	RegistryInput      Code = "registry-input"
	RegistryExtra      Code = "registry-extra"
	RegistryDependency Code = "registry-dependency"
	RegistryOutput     Code = "registry-output"

	OutputMissing     Code = "output-missing"
	OutputUnreadable  Code = "output-unreadable"
	OutputField       Code = "output-field"
	OutputContract    Code = "output-contract"
	OutputMachines    Code = "output-machines"
	OutputEndpoint    Code = "output-endpoint"
	ServingUnused     Code = "serving-unused"
	EndpointNotListed Code = "endpoint-not-listed"
	SharedUnknown     Code = "shared-unknown"
	SharedPerMachine  Code = "shared-per-machine"
	SharedUnused      Code = "shared-unused"
	SharedNotNamed    Code = "shared-not-named"
	SharedReplaced    Code = "shared-replaced"
	SharedValue       Code = "shared-value"

	Count               Code = "count"
	CountIndex          Code = "count-index"
	ForEachKeys         Code = "for-each-keys"
	SiblingReference    Code = "sibling-reference"
	SameName            Code = "same-name"
	UserDataNotIgnored  Code = "user-data-not-ignored"
	ServingInMachine    Code = "serving-in-machine"
	ImageUnused         Code = "image-unused"
	NewestImage         Code = "newest-image"
	ImageByName         Code = "image-by-name"
	UnstableFunction    Code = "unstable-function"
	NeverIdle           Code = "never-idle"
	CreateBeforeDestroy Code = "create-before-destroy"
	PreventDestroy      Code = "prevent-destroy"
	ReplaceTriggeredBy  Code = "replace-triggered-by"
	DestroyProvisioner  Code = "destroy-provisioner"
	RemoteProvisioner   Code = "remote-provisioner"
	DataOfMachines      Code = "data-of-machines"
	DataDependsOn       Code = "data-depends-on"
	ProviderOfMachines  Code = "provider-of-machines"

	TerraformVersion Code = "terraform-version"
	ProviderVersion  Code = "provider-version"
	LockFileMissing  Code = "lock-file-missing"
	LockFileProvider Code = "lock-file-provider"
	BackendMissing   Code = "backend-missing"
	BackendLock      Code = "backend-lock"
	Syntax           Code = "syntax"
	FileNotRead      Code = "file-not-read"
	ModuleNotRead    Code = "module-not-read"
)

// Rule is one thing that the contract wants.
type Rule struct {
	Code     Code
	Severity spec.Severity
	Want     string // what the contract wants
	Change   string // how to get there
	Why      string // what goes wrong otherwise
}

// Rules are all rules, in the order of the contract's document.
func Rules() []Rule {
	return slices.Concat(inputRules(), registryRules(), outputRules(), machineRules(), terraformRules())
}

func ruleOf(code Code) Rule {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Code == code })
	if i < 0 {
		return Rule{Code: code, Severity: spec.Error}
	}
	return rules[i]
}

func failing(code Code, want, change, why string) Rule {
	return Rule{Code: code, Severity: spec.Error, Want: want, Change: change, Why: why}
}

func warning(code Code, want, change, why string) Rule {
	return Rule{Code: code, Severity: spec.Warning, Want: want, Change: change, Why: why}
}

func inputRules() []Rule {
	return []Rule{
		failing(MachinesMissing, "the contract wants variable machines", "copy it from docs/terraform-contract.md",
			"It is the only way in which Theseus tells the module which machines there are."),
		failing(MachinesType, "the contract wants map(object({role, pool, kubernetes_version, image, failure_domain, created = string, serving = bool, values = map(string)}))",
			"copy the type from docs/terraform-contract.md",
			"Terraform drops attributes that the type does not name and refuses a map that lacks one, so the registry would not hold what was asked for."),
		failing(MachinesDefault, "the contract wants no default", "remove it",
			"With a default, a plan without Theseus's map still works, and destroys every machine."),
		failing(MachinesNullable, "the contract wants nullable = false", "add it",
			"A null map, from a slip in a var file, would pass as no machines."),
		failing(MachinesValidation, "the contract wants a validation that refuses {}", "add: validation { condition = length(var.machines) > 0 … }",
			"An empty map is never meant; it would destroy every machine."),
		warning(ValidationUnclear, "the contract wants a validation that refuses {}", "write it as length(var.machines) > 0",
			"The condition uses functions or values that the check can't evaluate."),
		failing(BootstrapMissing, "the contract wants variable bootstrap", "copy it from docs/terraform-contract.md",
			"A new machine joins by its user data; there is no other way to hand it over."),
		failing(BootstrapType, "the contract wants type = map(string)", "set it",
			"Theseus gives user data by machine name."),
		failing(BootstrapSensitive, "the contract wants sensitive = true", "add it",
			"User data holds a join token and a certificate key, which would be printed in plans."),
		failing(BootstrapDefault, "the contract wants default = {}", "set it",
			"Outside an add step Theseus gives no user data at all."),
		failing(BootstrapUnused, "the contract wants machines made with the user data that Theseus gives", `hand lookup(var.bootstrap, each.key, "") to the machine`,
			"A new machine would never join."),
		failing(BootstrapLookup, "the contract wants it read so that a missing key is no error", `write lookup(var.bootstrap, each.key, "")`,
			"The map holds a machine's key only while that machine is created; in every later plan the bare index is an error."),
		failing(BootstrapForEach, "the contract wants machines to exist whether they have user data or not", "make for_each of var.machines alone",
			"The map is empty after a join; every machine made from its keys would then be destroyed."),
		failing(BootstrapOutput, "the contract wants user data in no output", "remove it",
			"Outputs are kept in the state and shown; user data holds join credentials."),
	}
}

func registryRules() []Rule {
	return []Rule{
		failing(RegistryMissing, `the contract wants resource "terraform_data" "machine" in the root module`, "copy it from docs/terraform-contract.md",
			"From it Theseus knows after a crash which machines were asked for."),
		failing(RegistryForEach, "the contract wants for_each = var.machines", "set exactly that",
			"A machine that the registry leaves out is unknown to Theseus."),
		failing(RegistryInput, "the contract wants input = each.value", "set exactly that",
			"The registry must hold what was asked for, unchanged."),
		failing(RegistryExtra, "the contract wants the registry to record, and nothing else", "move it to a resource of its own",
			"The registry's entry is updated when serving flips; whatever hangs on it would run, or be replaced, at that moment."),
		failing(RegistryDependency, "the contract wants every resource of a machine to depend on its registry entry", "add depends_on = [terraform_data.machine]",
			"Entries must be made before and removed after their machine; else a killed apply leaves a machine that nobody asked for."),
		failing(RegistryOutput, "the contract wants machines made from the map itself", "use each.value, or terraform_data.machine[each.key].input",
			"While serving flips, the registry's output is unknown in the plan, and Terraform replaces whatever is made from it."),
	}
}

func outputRules() []Rule {
	return []Rule{
		failing(OutputMissing, "the contract wants output theseus", "copy it from docs/terraform-contract.md",
			"From it Theseus knows that it works on the right cluster, and where its machines are."),
		warning(OutputUnreadable, "the check wants it written out", "write it in the output, or in a local, as { … }, or a list as [ … ]",
			"What functions make can't be checked without a plan."),
		failing(OutputField, "the contract wants contract, cluster, endpoint, acts_on_serving, machines (hostname, addresses, provider_id) and shared_addresses", "add it",
			"Theseus reads every one of them before each step."),
		failing(OutputContract, "the contract wants contract = 1", "set it, once the module does what version 1 asks",
			"A version that Theseus does not know is refused."),
		failing(OutputMachines, "the contract wants every machine under its name", "write machines = { for name, m in var.machines : name => { … } }",
			"Machines are matched to Nodes and etcd members by what stands under their name."),
		failing(OutputEndpoint, "the contract wants an endpoint that outlives every machine", "use a load balancer's address, or a name that follows it",
			"Every machine will be replaced, and the API with it if its address is a machine's."),
		failing(ServingUnused, "the contract wants acts_on_serving = false when nothing takes serving", "make load-balancer members of the machines that serve, or set it to false",
			"Theseus would wait for a machine to leave the endpoint that never leaves."),
		failing(EndpointNotListed, "the contract wants what each machine has of the endpoint in shared_addresses", "if it belongs to the endpoint, name it there and apply that before a roll; if not, make it without serving",
			"The step in which a machine joins or leaves the endpoint may touch nothing else of that machine, and is refused."),
		failing(SharedUnknown, "the contract wants addresses of resources of this module", "write TYPE.NAME, with module.NAME. in front inside a module",
			"A wrong name allows nothing, and the step that needs it is refused."),
		failing(SharedPerMachine, "the contract wants only what all machines share, and what comes, goes or changes with serving", "remove it; or, if it belongs to the endpoint, write for_each = { for name, m in var.machines : name => m if m.serving }",
			"What is listed may go when its machine leaves the endpoint. All else that a machine has comes and goes with the machine, and needs no listing."),
		warning(SharedUnused, "the contract wants only resources that change with the machines", "remove it from shared_addresses",
			"It would let a change pass that has nothing to do with a machine."),
		failing(SharedNotNamed, "the contract wants what changes with the machines in shared_addresses, or by machine", "name it there, or give it for_each = var.machines",
			"It would change in a step that may touch one machine only, and the step is refused."),
		failing(SharedReplaced, "the contract wants shared resources that change in place", "give it for_each = var.machines, so that each machine has its own",
			"It would be destroyed and made again whenever a machine comes or goes, and the step is refused."),
		failing(SharedValue, "the contract wants nothing in a machine that changes with its siblings", "use an attribute that stays (id), or make the shared thing from something else",
			"When a machine comes or goes the shared resource changes, and with it every machine made from it."),
	}
}

func machineRules() []Rule {
	return []Rule{
		failing(Count, "the contract wants for_each over names", "replace count by for_each = var.machines, with moved blocks (docs/terraform-contract.md)",
			"Numbers move up when a machine goes, and Terraform then replaces those behind it."),
		warning(CountIndex, "the contract wants machines, and all that they have, by name", "if that is what these are, replace count by for_each = var.machines, with moved blocks (docs/terraform-contract.md)",
			"Machines that are counted are none that Theseus could replace. What is not a machine's may be counted."),
		failing(ForEachKeys, "the contract wants the machine's name as key", "write for_each = var.machines, or { for name, m in var.machines : name => … if … }",
			"A step is allowed to touch the addresses with this machine's name in them and no other."),
		failing(SiblingReference, "the contract wants siblings by [each.key] alone", "write NAME[each.key], and put what differs between machines into values",
			"Lists and whole maps change with every machine that comes or goes, and so does what is made from them: an untouched machine is replaced."),
		warning(SameName, "the contract wants names that differ by machine", "make it from each.key",
			"Old and new machine exist side by side; many clouds refuse a second one of the same name."),
		failing(UserDataNotIgnored, "the contract wants later changes of user data ignored", "add it to lifecycle { ignore_changes = […] }",
			"User data is given once. In the next plan it is gone, and Terraform would replace the machine."),
		failing(ServingInMachine, "the contract wants the machine itself untouched when serving flips", "take the fields that it needs, such as each.value.image, and act on serving in a resource of its own",
			"Flipping serving would update or replace the machine, and the step is refused."),
		failing(ImageUnused, "the contract wants machines made from the image that was asked for", "use each.value.image",
			"New machines would not have the image that the spec asks for, and be replaced again and again."),
		failing(NewestImage, "the contract wants the image that was asked for", "use each.value.image",
			"The next upload would change every machine at once, and a new machine would not have the image that was reviewed."),
		warning(ImageByName, "the contract wants the image's id", "use each.value.image, which Theseus resolves to an id",
			"A name can be given to another image; all machines made from it would then be replaced."),
		failing(UnstableFunction, "the contract wants machines that do not change by themselves", "use each.value.created, or add the argument to ignore_changes",
			"Its value is new in every plan, and with it the machine."),
		warning(NeverIdle, "the contract wants a plan without changes when nothing was asked for", "remove it, add the argument to ignore_changes, or name it in spec.terraform.tolerate",
			"A roll does not begin while the plan shows changes of its own."),
		failing(CreateBeforeDestroy, "the contract wants machines added and removed by key", "remove create_before_destroy",
			"It replaces behind Theseus's back, without join or drain, and spreads to all that the resource depends on."),
		failing(PreventDestroy, "the contract wants machines that can be removed", "remove prevent_destroy; use the provider's own protection if you need one",
			"It can't be lifted for one machine, so no machine could ever be replaced."),
		failing(ReplaceTriggeredBy, "the contract wants no machine replaced in place", "remove replace_triggered_by",
			"It replaces a running machine, without join or drain, when something else changes; the registry's entry does when serving flips."),
		failing(DestroyProvisioner, "the contract wants provisioners at destroy to use self alone", "keep what they need in the resource's own arguments and write self.…",
			"When a machine is removed, its key is gone from every map."),
		warning(RemoteProvisioner, "the contract wants machines set up by their user data", "move it to the image or to user data",
			"It needs a way by SSH from wherever Theseus runs; when it fails, the machine is tainted and made again under another name."),
		failing(DataOfMachines, "the contract wants data sources of one machine, or of none", "give it for_each = var.machines, or move it out of the module",
			"It is read again in the middle of a step that may touch one machine only, and the step is refused."),
		failing(DataDependsOn, "the contract wants data sources without depends_on on machines", "remove depends_on; refer to an attribute instead",
			"While anything that it waits for changes, the result is unknown, and Terraform replaces every machine made from it."),
		failing(ProviderOfMachines, "the contract wants providers that are set up without machines", "set them up from variables, or use a module of its own",
			"While a machine is added the provider's settings are unknown, and Terraform can't plan at all."),
	}
}

func terraformRules() []Rule {
	return []Rule{
		warning(TerraformVersion, "the contract wants Terraform 1.4 or newer", `add terraform { required_version = ">= 1.4" }`,
			"Older ones lack terraform_data; everyone should hear it in the same words."),
		failing(ProviderVersion, "the contract wants every provider pinned", "add it to required_providers, with source and version",
			"A provider that changes between plan and apply changes machines that nobody touched."),
		failing(LockFileMissing, "the contract wants the lock file in Git", "run terraform init and commit .terraform.lock.hcl",
			"Theseus runs terraform init with -lockfile=readonly, so that plan and apply use the providers that were reviewed."),
		failing(LockFileProvider, "the contract wants every provider in the lock file", "run terraform init and commit .terraform.lock.hcl",
			"terraform init with -lockfile=readonly fails."),
		warning(BackendMissing, "the contract wants a backend that keeps and locks the state", "add a backend to the terraform block; for trying out, local is fine",
			"The state would be in the job's own folder, or on the disk of one computer, and be gone with it."),
		failing(BackendLock, "the contract wants a backend that locks the state", "set its locking up, or use another backend",
			"Two runs at once would make machines that the state does not know."),
		failing(Syntax, "Terraform wants correct HCL", "correct it; terraform validate says more",
			"Nothing else is checked while a file can't be read."),
		warning(FileNotRead, "the check reads *.tf files", "move what belongs to the contract there",
			"JSON, OpenTofu's own files and override files are not read, so nothing in them is checked."),
		warning(ModuleNotRead, "the check reads local modules", "make sure that it keeps to the contract, or use it from a local folder",
			"A module from elsewhere gets machines, and may break any of these rules unseen."),
	}
}
