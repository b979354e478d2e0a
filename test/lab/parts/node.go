// SPDX-License-Identifier: Apache-2.0

package parts

import "context"

// Envtest builds the envtest folder of a version and points EnvtestLink at it.
func (c *Cache) Envtest(ctx context.Context, v Versions) (string, error) {
	dir, err := c.Get(ctx, v.EnvtestPart())
	if err != nil {
		return "", err
	}
	return dir, c.LinkEnvtest(dir)
}
func (c *Cache) NodeImage(ctx context.Context, r Release, v Versions) (string, error) { return "", nil }
