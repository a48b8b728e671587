/* broken.c - see broken.h. The messages are errors, because a result without a record must not look
 * complete at any log level. The warning W040 has the number of records. */
#include "lib/analysis/records/broken.h"

#include <string.h>

void broken_place(struct err *bad, const char *where)
{
    if (strncmp(bad->text, where, strlen(where)) != 0)
        err_prefix(bad, "%s", where);
}

void broken_add(struct broken *broken, const struct err *bad, const char *where)
{
    struct err placed = *bad;
    broken_place(&placed, where);
    if (broken->n < REC_BAD_SAID)
        memcpy(broken->said[broken->n], placed.text, sizeof placed.text);
    broken->n++;
}

int broken_verdict(const struct broken *broken, const struct log *log)
{
    if (!broken->n)
        return EXIT_OK;
    for (int64_t i = 0; i < broken->n && i < REC_BAD_SAID; i++)
        log_error(log, "%s", broken->said[i]);
    if (broken->n > REC_BAD_SAID)
        log_error(log, "and %lld more bad records like these",
                  (long long)(broken->n - REC_BAD_SAID));
    log_warn(log, "W040", "%lld broken records are left out; mend or remove them",
             (long long)broken->n);
    return broken->unsound ? EXIT_BAD_DATA : EXIT_FAILED_RECORDS;
}
