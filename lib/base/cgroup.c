/* cgroup.c - see cgroup.h. /proc/self/cgroup has a line for each hierarchy: "0::/a/b" (version 2),
 * "4:cpu,cpuacct:/a/b" (version 1). Inside a container this path may be a path of the host. Then
 * its folders may not exist in the container. A file that cannot be read sets no limit. */
#include "lib/base/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

/* Returns 1 if the comma-separated list names the controller. */
static int is_listed(const char *list, const char *controller)
{
    const size_t n = strlen(controller);
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && !strncmp(list, controller, n))
            return 1;
    return 0;
}

static void walk_up(const char *mount, const char *group, int version, cgroup_fn *fn, void *ctx)
{
    char *folder = mem_format("%s%s", mount, group[1] ? group : ""); /* "/" is the mount */
    const size_t top = strlen(mount);
    for (char *slash; strlen(folder) >= top; *slash = 0) {
        fn(ctx, folder, version);
        slash = strrchr(folder, '/');
    }
    free(folder);
}

void cgroup_walk(const char *root, const char *controller, cgroup_fn *fn, void *ctx)
{
    char line[8192];
    char *path = mem_format("%s/proc/self/cgroup", root);
    char *two = mem_format("%s/sys/fs/cgroup", root), *one = mem_format("%s/%s", two, controller);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group || group[1] != '/')
            continue;
        *group++ = 0;
        if (!list[1])
            walk_up(two, group, 2, fn, ctx);
        else if (is_listed(list + 1, controller))
            walk_up(one, group, 1, fn, ctx);
    }
    if (file)
        fclose(file);
    free(path);
    free(two);
    free(one);
}
