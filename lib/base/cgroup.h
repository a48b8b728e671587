/* cgroup.h - lists the control groups that limit this process. */
#pragma once

/* Gets the folder of a group. version is 1 or 2; the files in the folder have other names in 1 than
 * in 2. */
typedef void cgroup_fn(void *ctx, const char *folder, int version);

/* Calls fn for the group of this process and for every group above it, in version 2 (one hierarchy
 * for all controllers) and in version 1 (one hierarchy per controller). Inside a container only the
 * folder of the root group may exist. `controller` is "cpu" or "memory". `root` is a prefix of
 * /proc and /sys, "" except in tests. Source: Linux, Documentation/admin-guide/cgroup-v2.rst. */
void cgroup_walk(const char *root, const char *controller, cgroup_fn *fn, void *ctx);
