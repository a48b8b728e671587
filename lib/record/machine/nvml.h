/* nvml.h - reads the state of a GPU from its driver: clocks, power, energy, temperature, memory.
 *
 * The driver's library (libnvidia-ml.so.1) is loaded at run time, so the build does not need it;
 * without it nvml_open returns NULL. No setting of the GPU is changed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Why clocks are lowered: bits of nvml_state.reasons, as the driver numbers them. */
enum {
    NVML_POWER_CAP = 0x4,
    NVML_HW_SLOWDOWN = 0x8,
    NVML_SW_THERMAL = 0x20,
    NVML_HW_THERMAL = 0x40,
    NVML_POWER_BRAKE = 0x80
};

/* A value is -1 if the driver does not report it. */
struct nvml_state {
    int64_t sm_mhz, memory_mhz;
    int64_t power_mw;      /* of the board, now; before driver 530 its mean over up to 1 s */
    int64_t energy_mj;     /* of the board, since the driver was loaded; ticks every 20 to 100 ms */
    int64_t temperature_c;
    int64_t reasons;       /* the bits above, and others of the driver */
    int64_t process_bytes; /* device memory of this process, however allocated; -1 in a container
                            * whose pids are not the host's */
    int64_t used_bytes;    /* of the device, by all processes */
    int64_t reserved_bytes; /* by driver and firmware; not in used_bytes. -1: the driver reports
                             * one number (before 510), and used_bytes contains both */
    int64_t foreign;       /* other processes that compute on this GPU */
    int64_t ecc_errors;    /* uncorrected, since the driver was loaded */
};

struct nvml;
/* Opens the GPU at a PCI address, "0000:18:00.0". own: number of processes of this measurement on
 * the GPU, with this one; that many do not count as foreign. So while one of them is missing, one
 * foreign process is not seen. Returns NULL if there is no such GPU or no driver. The caller's. */
struct nvml *nvml_open(const char *address, size_t own);
void nvml_close(struct nvml *n); /* NULL is fine */
void nvml_read(struct nvml *n, struct nvml_state *out); /* n NULL: all -1 */
/* nvml_read() without processes and errors, which stay -1: fast enough for sampling. */
void nvml_glance(struct nvml *n, struct nvml_state *out);
/* Returns the version of the driver, "580.82.07"; NULL without a driver. The caller's. */
char *nvml_driver(void);
/* Returns the names of all GPUs of the machine, "NVIDIA H200, NVIDIA H200"; NULL without a GPU or
 * driver. The caller's. */
char *nvml_names(void);
