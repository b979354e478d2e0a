// SPDX-License-Identifier: Apache-2.0

package module_test

import (
	"fmt"
	"strings"
	"testing"
)

// Files made to exhaust the check come to an end, and with a finding or none, never with a crash.
func TestHostileModules(t *testing.T) {
	t.Parallel()
	chain := "a0 = timestamp()\n"
	for i := range 3000 {
		chain += fmt.Sprintf("a%d = [local.a%d, local.a%d]\n", i+1, i, i)
	}
	calls := ""
	for i := range 20 {
		calls += fmt.Sprintf("module \"m%d\" {\n  source = \"./next\"\n  x = [for i in range(9) : module.m%d]\n}\n", i, (i+1)%20)
	}
	for name, f := range map[string]folders{
		"brackets":   {"main.tf": []byte("locals {\n  a = " + strings.Repeat("[", 100_000) + "\n}\n")},
		"unary":      {"main.tf": []byte("locals {\n  a = " + strings.Repeat("!", 10_000) + "x\n}\n")},
		"sum":        {"main.tf": []byte("locals {\n  a = " + strings.Repeat("x.y+", 10_000) + "1\n}\n")},
		"conditions": {"main.tf": []byte("locals {\n  a = " + strings.Repeat("x ? y : ", 5_000) + "1\n}\n")},
		"blocks":     {"main.tf": []byte("resource \"a\" \"b\" {\n" + strings.Repeat("c {\n", 10_000))},
		"doubling":   {"main.tf": []byte("locals {\n" + chain + "}\noutput \"a\" { value = local.a3000 }\n")},
		"calls":      {"main.tf": []byte(calls), "next/main.tf": []byte(calls), "next/next/main.tf": []byte(calls), "next/next/next/main.tf": []byte(calls)},
		"circles":    {"main.tf": []byte("module \"a\" { source = \"./b\" }\n"), "b/main.tf": []byte("module \"a\" { source = \"../b\" }\n")},
		"large":      {"main.tf": make([]byte, 1<<20)},
	} {
		t.Logf("%s", name) // the last one named is the one that does not end
		check(t, f)
	}
}
