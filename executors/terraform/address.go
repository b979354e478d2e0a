// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"strconv"
	"strings"
)

// eachIndex splits an address, module.node["a"].x.y[0], at its instance keys. It calls text with what lies between
// them and key with each.
func eachIndex(address string, text, key func(string)) {
	for {
		open := strings.IndexByte(address, '[')
		if open < 0 {
			text(address)
			return
		}
		text(address[:open])
		address = address[open+1:]
		if quoted, err := strconv.QuotedPrefix(address); err == nil && quoted[0] == '"' {
			key(quoted)
			address = address[len(quoted):]
		} else if end := strings.IndexByte(address, ']'); end >= 0 {
			key(address[:end])
			address = address[end:]
		}
		address = strings.TrimPrefix(address, "]")
	}
}

// keys are the for_each keys in an address, of modules and of the resource, outermost first.
func keys(address string) []string {
	var all []string
	eachIndex(address, func(string) {}, func(key string) {
		if name, err := strconv.Unquote(key); err == nil {
			all = append(all, name)
		}
	})
	return all
}

// bare is an address without instance keys: the resource as the configuration has it.
func bare(address string) string {
	var b strings.Builder
	eachIndex(address, func(text string) { b.WriteString(text) }, func(string) {})
	return b.String()
}
