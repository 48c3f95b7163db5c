/* RocksDB's settings for one writer, values of 100 bytes to 400 KB, point reads and short scans, a small idle
 * process and a quick start. Measured with RocksDB 7.8.3 of Debian 12 on two shared cores with an ext4 disk
 * (ratios matter, not digits):
 *
 *  - No log: the journal is the log (journal.h). One of an older format is read with the rules that it was written
 *    by: an incomplete record at its end, which nobody was told of, is tolerated, any other damage refused.
 *  - Memtables of 16 MB: a start reads back one of them, after a crash under load at most three, in about
 *    100 ms each; 32 MB doubled that and gained nothing. A filter over a memtable's keys takes a read that
 *    need not look there from 1.8 to 0.6 us.
 *  - Blocks of 8 KB, a hash index in them and a restart every 4 keys: 3.2 us for a cached read among a
 *    million keys (4.7 with a restart every 16 and no memtable filter), 7.5 us for a scan of ten. XXH3 rather
 *    than CRC32C, which Debian's build computes without the processor's help.
 *  - A start opens all files and writes nothing: 10 to 30 ms, for a new folder as for five million keys. */
#include "store/rocks_options.h"

#include <stdbool.h>

#include "base/fail.h"

#define MEMTABLE_BYTES        ((size_t)16 * 1024 * 1024)
#define MEMTABLE_FILTER_SHARE 0.02
#define BLOCK_BYTES           ((size_t)8 * 1024)
#define BLOCK_RESTART_KEYS    4
#define FILTER_BITS           10
#define CHECKSUM_XXH3         4 /* rocksdb::kXXH3, which c.h does not name */
#define DIARY_HEADER          5 /* rocksdb::HEADER_LEVEL: nothing but the settings at the start */
#define LEVEL_BASE_BYTES      ((uint64_t)64 * 1024 * 1024)
#define SYNC_EVERY_BYTES                                                                                     \
    ((uint64_t)1024 *                                                                                        \
     1024) /* of files being written, so that no single sync is long                        \
                             */

/* Sets what the C interface has no function for. Takes base over. */
static rocksdb_options_t *options_named(rocksdb_options_t *base)
{
    const char *names = "avoid_flush_during_recovery=true;avoid_flush_during_shutdown=true";
    rocksdb_options_t *options = rocksdb_options_create();
    char *words = NULL;
    rocksdb_get_options_from_string(base, names, options, &words);
    ensure(!words);
    rocksdb_options_destroy(base);
    return options;
}

static void set_tables(rocksdb_options_t *options, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *tables = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(tables, cache);
    rocksdb_block_based_options_set_block_size(tables, BLOCK_BYTES);
    rocksdb_block_based_options_set_block_restart_interval(tables, BLOCK_RESTART_KEYS);
    rocksdb_block_based_options_set_filter_policy(tables,
                                                  rocksdb_filterpolicy_create_bloom_full(FILTER_BITS));
    rocksdb_block_based_options_set_format_version(tables, 5);
    rocksdb_block_based_options_set_checksum(tables, CHECKSUM_XXH3);
    rocksdb_block_based_options_set_data_block_index_type(
        tables, rocksdb_block_based_table_data_block_index_type_binary_search_and_hash);
    rocksdb_options_set_block_based_table_factory(options, tables);
    rocksdb_block_based_options_destroy(tables);
}

static void set_memory(rocksdb_options_t *options)
{
    rocksdb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
    rocksdb_options_set_max_write_buffer_number(options, ROCKS_MEMTABLES);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, MEMTABLE_FILTER_SHARE);
    rocksdb_options_set_memtable_whole_key_filtering(options, true);
    /* There is one writer: the simpler insert is the quicker. */
    rocksdb_options_set_allow_concurrent_memtable_write(options, false);
}

static void set_files(rocksdb_options_t *options)
{
    /* The top two levels are rewritten too soon for compression to pay. */
    static const int compression[] = {rocksdb_no_compression, rocksdb_no_compression,
                                      rocksdb_lz4_compression};
    rocksdb_options_set_compression_per_level(options, compression,
                                              sizeof compression / sizeof compression[0]);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, true);
    rocksdb_options_set_max_bytes_for_level_base(options, LEVEL_BASE_BYTES);
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_bytes_per_sync(options, SYNC_EVERY_BYTES);
    /* Readers run on the loops: obsolete files are deleted behind their backs. */
    rocksdb_options_set_avoid_unnecessary_blocking_io(options, true);
}

static void set_start(rocksdb_options_t *options, uint32_t open_files)
{
    rocksdb_options_set_wal_recovery_mode(options, rocksdb_tolerate_corrupted_tail_records_recovery);
    /* Without a limit, and up to a quarter of it, a read need not look for its file's reader. */
    rocksdb_options_set_max_open_files(options, open_files ? (int)open_files : -1);
    rocksdb_options_set_max_file_opening_threads(options, 2);
    rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(options, true);
}

/* RocksDB's own log of events, the file LOG, gets what a start writes to it and no more. This RocksDB is built with its
 * assertions, and one of them ends the process at the line behind one that could not be written: on a full disk. */
static void set_diary(rocksdb_options_t *options)
{
    rocksdb_options_set_info_log_level(options, DIARY_HEADER);
    rocksdb_options_set_keep_log_file_num(options, 1);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    rocksdb_options_set_stats_persist_period_sec(options, 0);
}

void rocks_setup_init(struct rocks_setup *out, const struct rocks_options *options)
{
    rocksdb_options_t *rocksdb = options_named(rocksdb_options_create());
    out->cache = rocksdb_cache_create_lru((size_t)options->cache_bytes);
    rocksdb_options_set_create_if_missing(rocksdb, !options->read_only);
    set_tables(rocksdb, out->cache);
    set_memory(rocksdb);
    set_files(rocksdb);
    set_start(rocksdb, options->open_files);
    set_diary(rocksdb);
    out->rocksdb = rocksdb;
}

void rocks_setup_free(struct rocks_setup *setup)
{
    rocksdb_options_destroy(setup->rocksdb);
    rocksdb_cache_destroy(setup->cache);
}
