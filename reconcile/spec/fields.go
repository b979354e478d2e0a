// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is one key of a document, as its struct tags tell.
type field struct {
	name     string
	index    int
	typ      reflect.Type
	desc     string
	acts     Capability
	def      string
	hasDef   bool
	enum     []string
	min, max *int
	format   string
	keys     string
	unique   string
	required bool
	needed   bool
	empty    bool
}

// fieldsOf reads the tags of a struct type, in the order of its fields.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		f := field{
			name:     name,
			index:    i,
			typ:      sf.Type,
			desc:     sf.Tag.Get("desc"),
			acts:     Capability(sf.Tag.Get("acts")),
			format:   sf.Tag.Get("format"),
			keys:     sf.Tag.Get("keys"),
			unique:   sf.Tag.Get("unique"),
			required: sf.Tag.Get("required") == "true",
			needed:   sf.Tag.Get("needed") == "true",
			empty:    sf.Tag.Get("empty") == "true",
			min:      intTag(sf.Tag, "min"),
			max:      intTag(sf.Tag, "max"),
		}
		f.def, f.hasDef = sf.Tag.Lookup("default")
		if enum, ok := sf.Tag.Lookup("enum"); ok {
			f.enum = strings.Split(enum, ",")
		}
		fields = append(fields, f)
	}
	return fields
}

func intTag(tag reflect.StructTag, key string) *int {
	n, err := strconv.Atoi(tag.Get(key))
	if err != nil {
		return nil
	}
	return &n
}

func fieldNames(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	slices.Sort(names)
	return names
}

// scalarOf returns the scalar behind an addressable value, if its type is one.
func scalarOf(v reflect.Value) (scalar, bool) {
	s, ok := v.Addr().Interface().(scalar)
	return s, ok
}

//nolint:gochecknoglobals // read-only type
var objectType = reflect.TypeFor[Object]()
