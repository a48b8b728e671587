/* system_ltm.c - the settings of the latent thought model (gen-ltm). The fit of its latents has
 * steps, which correspond to denoising steps: more steps take longer and may give a better answer.
 * The settings of a fit count only where the latents are fitted (z=posterior). */
#include "lib/setting/words.h"
#include "lib/setting/shared_rows.h"
#include "lib/setting/system.h"

static const struct setting rows[] = {
    MAX_NEW_ROW,
    {.name = "z", .type = SETTING_CHOICE, .choices = "posterior|prior|dit|zero|file",
     .standard = "posterior", .label = "z", .traits = SWEPT_TEXT,
     .help = "latents: fitted to the prompt; drawn from N(0, I); drawn from the prior that "
             "train-prior wrote beside the model; zero; or read from --z-file"},
    {.name = "vi_steps", .type = SETTING_INT, .hi = 1 << 16, .standard = "16", .unit = "steps",
     .label = "vi_steps", .only = "z=posterior",
     .traits = SWEPT_TEXT | SETTING_SHOWN | SETTING_AXIS,
     .help = "steps of a fit; 0: keep its start values"},
    {.name = "vi_rate", .type = SETTING_REAL, .lo = 1e-9, .hi = 10, .standard = "0.34",
     .label = "vi_rate", .only = "z=posterior", .traits = SETTING_SWEPT | SETTING_TEXT,
     .rare = 1,
     .help = "learning rate of the first step of a fit; the last step has a tenth of it"},
    {.name = "z_draw", .type = SETTING_CHOICE, .choices = "mean|sample", .standard = "mean",
     .label = "z_draw", .only = "z=posterior", .traits = SETTING_SWEPT | SETTING_TEXT,
     .rare = 1,
     .help = "use the mean of the fitted posterior, or a sample from it"},
    {.name = "refit", .type = SETTING_INT, .hi = LIMIT, .standard = "0", .unit = "tokens",
     .label = "refit", .only = "z=posterior", .traits = SWEPT_TEXT,
     .help = "fit to prompt and answer again after every N tokens; 0: never"},
    {.name = "solver", .type = SETTING_CHOICE, .choices = SOLVERS, .standard = "dpmpp2m",
     .label = "solver", .only = "z=dit", .traits = SWEPT_TEXT,
     .help = "solver that turns noise into latents; adaptive: as many evaluations as it needs"},
    {.name = "evaluations", .type = SETTING_INT, .lo = 1, .hi = 1 << 16, .standard = "20",
     .unit = "passes", .label = "evals", .only = "solver=ddim|dpmpp2m|edm",
     .traits = SWEPT_TEXT | SETTING_SHOWN | SETTING_AXIS, .rare = 1,
     .help = "evaluations of the prior for each text"},
    TEMPERATURE_ROW("0: take the most likely token; above 0: sample"),
    CONTRACT_ROW("answer"),
    KV_CACHE_ROW,
    {.name = "wkv", .type = SETTING_CHOICE, .choices = "auto|recurrent|chunked",
     .standard = "auto", .label = "wkv", .traits = SWEPT_SPEED, .rare = 1,
     .help = "form of RWKV time mixing in passes over a text; auto on a CPU: chunks of 16 tokens "
             "for RWKV 6, the recurrence for RWKV 7, where chunks save no multiplications"},
    VARIANT_ROWS,
    CHAT_ROW,
    BATCH_ROW};

static const struct settings_alias aliases[] = {
    {"ignore-eos", "contract", "fixed", 0},
    {"use-kv-cache", "cache", NULL, 1},
    {"max-new", "max_new", NULL, 1},
    VARIANT_ALIASES,
    {0}};

const struct settings_table system_ltm = {.system = "ltm",
                                          .row = rows,
                                          .n = sizeof rows / sizeof *rows,
                                          .alias = aliases};
