// SPDX-License-Identifier: Apache-2.0

package module

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// File is one file of a module's folder.
type File struct {
	Name string
	Data []byte
}

// Folder reads the files of a folder that Terraform reads: see IsRead. Folders are named relative to the root module,
// which is ".".
type Folder func(dir string) ([]File, error)

const (
	lockFile = ".terraform.lock.hcl"
	// maxFileBytes is far above what people write, and keeps a hostile file from exhausting the parser.
	maxFileBytes = 256 << 10
	// maxNesting does the same for brackets in brackets.
	maxNesting = 250
)

// isRead tells whether Terraform or OpenTofu would look at a file of that name.
func isRead(name string) bool {
	if name == lockFile {
		return true
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") {
		return false
	}
	for _, suffix := range []string{".tf", ".tf.json", ".tofu", ".tofu.json"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// FromDisk reads the folders of the root module in dir.
func FromDisk(dir string) Folder {
	return func(folder string) ([]File, error) {
		path := filepath.Join(dir, filepath.FromSlash(folder))
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		var files []File
		for _, e := range entries {
			if e.IsDir() || !isRead(e.Name()) {
				continue
			}
			name := filepath.Join(path, e.Name())
			if info, err := os.Stat(name); err == nil && (info.Size() > maxFileBytes || !info.Mode().IsRegular()) {
				return nil, fmt.Errorf("%s is not a file of at most %d KiB", name, maxFileBytes>>10)
			}
			data, err := os.ReadFile(name) //nolint:gosec // the folder is the user's own choice
			if err != nil {
				return nil, err
			}
			files = append(files, File{Name: e.Name(), Data: data})
		}
		return files, nil
	}
}

// load reads and parses one folder. The error is of reading; what is wrong inside becomes findings.
func (c *checker) load(dir string) (*config, error) {
	if known, ok := c.configs[dir]; ok {
		return known, nil
	}
	files, err := c.read(dir)
	if err != nil {
		return nil, err
	}
	out := newConfig(dir)
	for _, f := range files {
		if f.Name == lockFile {
			out.lock = c.parse(within(dir, f.Name), f.Data)
			continue
		}
		if !isRead(f.Name) {
			continue
		}
		out.files++
		if out.first == "" || f.Name == "main.tf" {
			out.first = within(dir, f.Name)
		}
		if body := c.parseConfig(within(dir, f.Name), f); body != nil {
			out.add(body)
		}
	}
	c.configs[dir] = out
	return out, nil
}

// parseConfig returns nil for files that are not read.
func (c *checker) parseConfig(path string, f File) *hclsyntax.Body {
	at := hcl.Range{Filename: path, Start: hcl.InitialPos, End: hcl.InitialPos}
	switch {
	case !strings.HasSuffix(f.Name, ".tf"):
		c.report(FileNotRead, at, "%s is not read", f.Name)
	case f.Name == "override.tf" || strings.HasSuffix(f.Name, "_override.tf"):
		c.report(FileNotRead, at, "%s is not read: Terraform merges it into other files", f.Name)
	default:
		return c.parse(path, f.Data)
	}
	return nil
}

func within(dir, name string) string {
	return strings.TrimPrefix(filepath.ToSlash(filepath.Join(dir, name)), "./")
}

// parse returns nil when the file can't be used, after it reported why.
func (c *checker) parse(name string, data []byte) *hclsyntax.Body {
	at := hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos}
	if len(data) > maxFileBytes || nesting(data, name) > maxNesting {
		c.report(Syntax, at, "%s is larger than %d KiB or nested deeper than %d", name, maxFileBytes>>10, maxNesting)
		return nil
	}
	file, diagnostics := hclsyntax.ParseConfig(data, name, hcl.InitialPos)
	for _, d := range diagnostics {
		if d.Severity != hcl.DiagError {
			continue
		}
		if d.Subject != nil {
			at = *d.Subject
		}
		c.report(Syntax, at, "%s: %s", d.Summary, strings.TrimSuffix(strings.Join(strings.Fields(d.Detail), " "), "."))
	}
	if diagnostics.HasErrors() || file == nil {
		c.broken = true
		return nil
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	return body
}

// nesting is how deep brackets are in brackets. The parser calls itself once for each.
func nesting(data []byte, name string) int {
	tokens, _ := hclsyntax.LexConfig(data, name, hcl.InitialPos)
	depth, deepest := 0, 0
	for _, t := range tokens {
		switch t.Type { //nolint:exhaustive // only brackets count
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			depth--
		}
		deepest = max(deepest, depth)
	}
	return deepest
}
