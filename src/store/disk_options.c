/* RocksDB's many settings, chosen for one writer, values of 100 bytes to 400 KB, point reads and short scans,
 * a small idle process and a quick start. */
#include "store/disk_options.h"

#include <stdbool.h>

#include "base/fail.h"

#define MEMTABLE_BYTES  ((size_t)32 * 1024 * 1024)
#define MEMTABLE_COUNT  3
#define LOG_TOTAL_BYTES ((uint64_t)64 * 1024 * 1024) /* replayed at the start: bounds how long that takes */
#define BLOCK_BYTES     ((size_t)8 * 1024)
#define FILTER_BITS     10
#define LEVELS          7

/* What the C interface has no function for. */
static const char options_by_name[] =
    "avoid_flush_during_recovery=true;" /* a start only reads the log back */
    "avoid_flush_during_shutdown=true;"
    "max_bgerror_resume_count=0"; /* a failure is final, S3 */

static rocksdb_options_t *options_named(rocksdb_options_t *base)
{
    rocksdb_options_t *options = rocksdb_options_create();
    char *words = NULL;
    rocksdb_get_options_from_string(base, options_by_name, options, &words);
    ensure(!words);
    rocksdb_options_destroy(base);
    return options;
}

static void set_tables(rocksdb_options_t *options, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *tables = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(tables, cache);
    rocksdb_block_based_options_set_block_size(tables, BLOCK_BYTES);
    rocksdb_block_based_options_set_filter_policy(tables,
                                                  rocksdb_filterpolicy_create_bloom_full(FILTER_BITS));
    rocksdb_block_based_options_set_format_version(tables, 5);
    rocksdb_block_based_options_set_data_block_index_type(
        tables, rocksdb_block_based_table_data_block_index_type_binary_search_and_hash);
    rocksdb_options_set_block_based_table_factory(options, tables);
    rocksdb_block_based_options_destroy(tables);
}

static void set_log(rocksdb_options_t *options)
{
    rocksdb_options_set_wal_recovery_mode(options, rocksdb_point_in_time_recovery);
    rocksdb_options_set_max_total_wal_size(options, LOG_TOTAL_BYTES);
    rocksdb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
    rocksdb_options_set_max_write_buffer_number(options, MEMTABLE_COUNT);
    rocksdb_options_set_allow_concurrent_memtable_write(options, false);
    rocksdb_options_set_enable_pipelined_write(options, false);
}

static void set_levels(rocksdb_options_t *options)
{
    static const int compression[LEVELS] = {
        rocksdb_no_compression,  rocksdb_no_compression,  rocksdb_lz4_compression, rocksdb_lz4_compression,
        rocksdb_lz4_compression, rocksdb_lz4_compression, rocksdb_lz4_compression,
    };
    rocksdb_options_set_compression_per_level(options, compression, LEVELS);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, false);
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_bytes_per_sync(options, 1024 * 1024);
}

static void set_house(rocksdb_options_t *options, bool read_only)
{
    rocksdb_options_set_max_open_files(options, -1);
    rocksdb_options_set_max_file_opening_threads(options, 2);
    rocksdb_options_set_skip_stats_update_on_db_open(options, true);
    rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(options, true);
    rocksdb_options_set_info_log_level(options, 2); /* warnings */
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_max_log_file_size(options, 1024 * 1024);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
    /* A reader must not change the folder, not even by RocksDB's own diary: no file can be made there. */
    if (read_only) rocksdb_options_set_db_log_dir(options, "/dev/null");
}

void disk_options_init(struct disk_options *out, const struct store_options *options)
{
    rocksdb_options_t *rocksdb = options_named(rocksdb_options_create());
    out->cache = rocksdb_cache_create_lru((size_t)options->cache_bytes);
    rocksdb_options_set_create_if_missing(rocksdb, !options->read_only);
    set_tables(rocksdb, out->cache);
    set_log(rocksdb);
    set_levels(rocksdb);
    set_house(rocksdb, options->read_only);
    out->rocksdb = rocksdb;
}

void disk_options_free(struct disk_options *options)
{
    rocksdb_options_destroy(options->rocksdb);
    rocksdb_cache_destroy(options->cache);
}
