/* cgroup.h - the control groups that limit this process. */
#pragma once

/* Takes the folder of a group; version: 1 or 2, whose files have different names. */
typedef void cgroup_fn(void *ctx, const char *folder, int version);

/* Calls fn for our group and every group above it: of version 2 (one hierarchy for all controllers)
 * and of version 1 (one hierarchy a controller). A container may see only its root. controller:
 * "cpu", "memory". root: prefix of /proc and /sys, "" except in tests. Source: Linux,
 * Documentation/admin-guide/cgroup-v2.rst. */
void cgroup_walk(const char *root, const char *controller, cgroup_fn *fn, void *ctx);
