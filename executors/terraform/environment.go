// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// inherited are the variables of our own environment that Terraform gets: how to find programs, proxies and
// certificates, and the pointers to a workload's identity that clouds put into a pod. Nothing that is a secret itself.
func inherited() []string {
	return []string{
		"PATH", "HOME", "USER",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR",
		"TF_CLI_CONFIG_FILE", // where an image says which mirror its providers come from
		// The kubernetes backend with in_cluster_config.
		"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
		// https://docs.aws.amazon.com/sdkref/latest/guide/feature-assume-role-credentials.html and feature-container-credentials.html
		"AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
		// https://azure.github.io/azure-workload-identity/docs/installation/mutating-admission-webhook.html
		"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST",
		// https://cloud.google.com/docs/authentication/application-default-credentials
		"GOOGLE_APPLICATION_CREDENTIALS",
	}
}

// settable reports whether a user may set a variable. Most TF_ variables change what a command does (TF_CLI_ARGS adds
// arguments, TF_VAR_ overrides the map of machines, TF_LOG prints secrets, TF_DATA_DIR and TF_PLUGIN_CACHE_DIR leave
// the private folder): https://developer.hashicorp.com/terraform/cli/config/environment-variables.
func settable(name string) bool {
	if name == "TMPDIR" || name == "" || strings.ContainsAny(name, "=\x00") {
		return false
	}
	if !strings.HasPrefix(name, "TF_") {
		return true
	}
	return name == "TF_CLI_CONFIG_FILE" || name == "TF_ENCRYPTION" || // OpenTofu's state encryption
		strings.HasPrefix(name, "TF_HTTP_") || strings.HasPrefix(name, "TF_TOKEN_")
}

// environment is all that Terraform sees.
func (m *Module) environment() ([]string, error) {
	env := map[string]string{}
	allowed := inherited()
	for _, pair := range m.options.Environ {
		if name, value, ok := strings.Cut(pair, "="); ok && slices.Contains(allowed, name) {
			env[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.options.Env)) {
		if !settable(name) {
			return nil, &UnfitError{
				Problem: fmt.Sprintf("environment variable %q is not allowed in spec.terraform.envFrom, because it changes what Terraform's commands do", name),
				Remedy:  "remove it; Terraform variables belong into variablesFrom",
			}
		}
		env[name] = string(m.options.Env[name])
	}
	maps.Copy(env, map[string]string{
		"TF_IN_AUTOMATION":   "1",
		"TF_INPUT":           "0",
		"CHECKPOINT_DISABLE": "1",
		"TF_DATA_DIR":        m.folder.file(dataName),
		"TMPDIR":             m.folder.file(tempName),
	})
	for name, value := range env {
		if strings.HasSuffix(strings.ToLower(name), "_proxy") && strings.Contains(value, "@") {
			m.secrets.add(value)
		}
	}
	pairs := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		pairs = append(pairs, name+"="+env[name])
	}
	return pairs, nil
}
