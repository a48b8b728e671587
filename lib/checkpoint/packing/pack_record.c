/* pack_record.c - see pack_record.h. A number that does not exist is null with a reason: the loss
 * in a format that the part cannot have, or the error of values that were not quantized. */
#include "lib/checkpoint/packing/pack_record.h"

#include <math.h>
#include <string.h>

#include "lib/checkpoint/quantization.h"
#include "lib/record/rec.h"

/* Sets the member `name` to the loss of a unit in format number f of mix_format[]. */
static void set_loss(json_t *j, const char *name, const struct mix_unit *unit, size_t f)
{
    double loss = isfinite(unit->bytes[f]) ? unit->loss[f] : (double)NAN;
    rec_set_number(j, name, loss, "it cannot have that format");
}

json_t *pack_record_unit(const struct config *config, const struct mix_unit *unit,
                         const char *loss_unit)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:s}", "model", config->name, "part",
                          quantization_part_name(unit->part), "dtype",
                          quantization_name(mix_format[unit->chosen]), "loss_unit", loss_unit);
    if (unit->part == PART_HEAD)
        json_object_set_new(j, "layer", json_null());
    else
        rec_set_int(j, "layer", (int64_t)unit->layer);
    rec_set_int(j, "parameters", (int64_t)unit->parameters);
    rec_set_int(j, "source_bytes", (int64_t)unit->bytes[0]);
    rec_set_int(j, "packed_bytes", (int64_t)unit->bytes[unit->chosen]);
    set_loss(j, "int8_loss", unit, 1);
    set_loss(j, "nf4_loss", unit, 2);
    return j;
}

static json_t *role_members(const struct checkpoint *model, enum dtype q,
                            const struct pack_role *pack_role, const char *role, const char *dtype)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:s?}", "model", model->config.name, "quant",
                          quantization_name(q), "role", role, "dtype", dtype);
    rec_set_int(j, "tensors", (int64_t)pack_role->tensors);
    rec_set_int(j, "parameters", (int64_t)pack_role->values);
    rec_set_int(j, "source_bytes", (int64_t)pack_role->source_bytes);
    rec_set_int(j, "packed_bytes", (int64_t)pack_role->packed_bytes);
    rec_set_number(j, "error_rms_ratio", sqrt(pack_role->error / pack_role->power),
                   "not quantized");
    return j;
}

/* The name of the format of a role. If the role was copied: the dtype of its tensor in the file. */
static const char *role_dtype(const struct checkpoint *model, const struct pack_role *role,
                              enum role r)
{
    static const char *const names[][2] = {{"F32", "f32"}, {"F16", "f16"}, {"BF16", "bf16"}};
    const char *stored = checkpoint_tensor(model, r, 0)->dtype;
    if (role->dtype != DTYPE_F32)
        return quantization_name(role->dtype);
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(stored, names[i][0]))
            return names[i][1];
    return NULL;
}

json_t *pack_record_role(const struct checkpoint *model, enum dtype dtype,
                         const struct pack_role *role, enum role r)
{
    return role_members(model, dtype, role, role_name(r), role_dtype(model, role, r));
}

json_t *pack_record_all(const struct checkpoint *model, enum dtype dtype,
                        const struct pack_role *sum)
{
    return role_members(model, dtype, sum, "all", NULL);
}

json_t *pack_record_prune(const struct config *from, const struct config *to,
                          const struct pack_role *sum)
{
    double gone = (double)(config_parameters(from) - config_parameters(to));
    json_t *j = json_pack("{s:s, s:s, s:s}", "model", to->name, "source_model", from->name, "arch",
                          from->family->name);
    rec_set_int(j, "heads", (int64_t)to->heads);
    rec_set_int(j, "source_heads", (int64_t)from->heads);
    rec_set_int(j, "kv_heads", (int64_t)to->kv_heads);
    rec_set_int(j, "source_kv_heads", (int64_t)from->kv_heads);
    rec_set_int(j, "ffn", (int64_t)to->ffn);
    rec_set_int(j, "source_ffn", (int64_t)from->ffn);
    rec_set_int(j, "parameters", (int64_t)config_parameters(to));
    rec_set_int(j, "source_parameters", (int64_t)config_parameters(from));
    rec_set_number(j, "removed_ratio", gone / (double)config_parameters(from), "");
    rec_set_int(j, "source_bytes", (int64_t)sum->source_bytes);
    rec_set_int(j, "packed_bytes", (int64_t)sum->packed_bytes);
    return j;
}
