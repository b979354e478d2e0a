// SPDX-License-Identifier: Apache-2.0

package kube

import "time"

// SetLeaseDuration shortens the lock's life, so that a test need not wait for a renewal.
func (c *Client) SetLeaseDuration(d time.Duration) { c.lease = d }

// SetDrainRound shortens one round of a drain.
func (c *Client) SetDrainRound(d time.Duration) { c.round = d }
