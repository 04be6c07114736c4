#include "unwind/unwinder.h"
#include "unwind/results.h"
#include <errno.h>
#include <string.h>
int fr_unwinder_start(const struct fr_unwinder_config *config, struct fr_unwinder **ret, struct fr_diag *d) { (void)config; (void)ret; (void)d; return -EOPNOTSUPP; }
int fr_unwinder_share_maps(const struct fr_unwinder *u, struct bpf_object *object) { (void)u; (void)object; return 0; }
struct fr_unwinder *fr_unwinder_stop(struct fr_unwinder *u) { (void)u; return NULL; }
pid_t fr_unwinder_tid(const struct fr_unwinder *u) { (void)u; return 0; }
void fr_unwinder_set_memory(struct fr_unwinder *u, uint64_t bytes) { (void)u; (void)bytes; }
void fr_unwinder_update(struct fr_unwinder *u, const void *records, size_t len) { (void)u; (void)records; (void)len; }
void fr_unwinder_end_round(struct fr_unwinder *u, uint64_t since_ns) { (void)u; (void)since_ns; }
void fr_unwinder_stats(const struct fr_unwinder *u, struct fr_unwinder_stats *ret) { (void)u; memset(ret, 0, sizeof(*ret)); }
