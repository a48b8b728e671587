/* system_endpoint.c - the settings of a request to a server of another software stack
 * (gen-endpoint). How the server decodes is not set here. The rows are the members of a request and
 * the load, which decides how long a request waits for other requests. */
#include "lib/setting/shared_rows.h"
#include "lib/setting/system.h"

static const struct setting rows[] = {
    {.name = "api", .type = SETTING_CHOICE, .choices = "completions|chat",
     .standard = "completions", .label = "api", .traits = SWEPT_TEXT,
     .help = "send the text as it is, or as messages, which the server puts into its template"},
    MAX_NEW_ROW,
    TEMPERATURE_ROW("0: take the most likely token; above 0: sample"),
    FILTER_ROWS("temperature>0", NULL),
    CONTRACT_ROW("answer"),
    {.name = "loop", .type = SETTING_CHOICE, .choices = "closed|open", .standard = "closed",
     .label = "loop", .traits = SWEPT_SPEED,
     .help = "closed: a request is sent when another one ends; open: at times that do not depend "
             "on the answers"},
    {.name = "arrival_rate", .type = SETTING_REAL, .lo = 1e-6, .hi = 1e6, .standard = "1",
     .unit = "requests/s", .label = "rate", .only = "loop=open",
     .traits = SWEPT_SPEED | SETTING_SHOWN, .help = "requests per second, in the mean"},
    {.name = "arrivals", .type = SETTING_CHOICE, .choices = "poisson|even",
     .standard = "poisson", .label = "arrivals", .only = "loop=open", .rare = 1,
     .traits = SWEPT_SPEED,
     .help = "times between requests: exponential, or all the same"},
    {.name = "batch", .type = SETTING_INT, .lo = 1, .hi = LIMIT, .standard = "1",
     .unit = "requests", .label = "batch", .only = "loop=closed",
     .traits = SWEPT_SPEED | SETTING_SHOWN, .help = "requests in flight at once",
     .option = "concurrency"}};

static const struct settings_alias aliases[] = {
    {"ignore-eos", "contract", "fixed", 0},
    {"max-new", "max_new", NULL, 1},
    {"batch", "batch", NULL, 1},
    {0}};

const struct settings_table system_endpoint = {.system = "endpoint",
                                               .row = rows,
                                               .n = sizeof rows / sizeof *rows,
                                               .alias = aliases};
