/* safetensors-series.c - see safetensors-series.h. A download that stopped early leaves some shards
 * of a series, and an older download may leave others. */
#include "lib/checkpoint/safetensors-series.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

int safetensors_series_parse(const char *name, size_t *prefix, unsigned *part, unsigned *parts)
{
    static const char tail[] = "-00000-of-00000.safetensors";
    size_t n = strlen(name), m = sizeof tail - 1;
    if (n < m)
        return 0;
    const char *at = name + n - m;
    for (size_t i = 0; i < m; i++)
        if (tail[i] == '0' ? at[i] < '0' || at[i] > '9' : at[i] != tail[i])
            return 0;
    *prefix = n - m;
    *part = (unsigned)strtoul(at + 1, NULL, 10);
    *parts = (unsigned)strtoul(at + 10, NULL, 10);
    return 1;
}

int safetensors_series(const json_t *shards, const char *folder, const char *index, struct err *e)
{
    const char *first = json_object_iter_key(json_object_iter((json_t *)shards)), *name;
    size_t prefix, other, count = json_object_size(shards);
    unsigned part, parts, of;
    json_t *unused;
    if (!safetensors_series_parse(first, &prefix, &part, &parts))
        return 0;
    json_object_foreach((json_t *)shards, name, unused) {
        if (!safetensors_series_parse(name, &other, &part, &of) || other != prefix || of != parts ||
            memcmp(name, first, prefix) || part < 1 || part > parts)
            return err_set(e, EXIT_BAD_DATA, "%s: shard %s does not belong to the series of %s",
                           index, name, first);
    }
    if (count != parts)
        return err_set(e, EXIT_BAD_DATA, "%s: names %zu shards, %s says %u", index, count, first,
                       parts);
    DIR *open = opendir(folder);
    int bad = 0;
    for (struct dirent *entry; open && !bad && (entry = readdir(open));)
        if (safetensors_series_parse(entry->d_name, &other, &part, &of) && other == prefix &&
            !memcmp(entry->d_name, first, prefix) && !json_object_get(shards, entry->d_name))
            bad = err_set(e, EXIT_BAD_DATA, "%s: shard %s is in the folder but not in the index",
                          index, entry->d_name);
    if (open)
        closedir(open);
    return bad;
}
