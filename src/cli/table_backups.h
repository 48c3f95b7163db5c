/* quipu table backup, backups, restore and rm-backup; and the setting and fact of `table set` and `describe`. */
#ifndef CLI_TABLE_BACKUPS_H
#define CLI_TABLE_BACKUPS_H

#include "cli/place.h"

int table_backup(const struct arguments *arguments);
int table_backups(const struct arguments *arguments);
int table_restore(const struct arguments *arguments);
int table_delete_backups(const struct arguments *arguments);

/* "off" is 0, "35d" and "35" are days; false: it is none of them. */
bool recovery_days_read(const char *text, unsigned long long *days);
/* 0 days: off. False after complaining. */
bool table_set_recovery(const struct place *place, struct arena *arena, const char *table, unsigned long long days);
/* "any moment since ... (35 days)"; empty when it is off, or when the endpoint knows nothing of it. */
struct slice table_recovery_text(const struct place *place, struct arena *arena, const char *table);

#endif
