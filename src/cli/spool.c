/* Length and bytes, one after the other. */
#include "cli/spool.h"

#include <stdint.h>

#include "cli/cli.h"

bool spool_add(struct spool *spool, struct slice json)
{
    uint64_t len = json.len;
    if (!spool->file) spool->file = tmpfile();
    bool fine = spool->file && fwrite(&len, sizeof len, 1, spool->file) == 1 &&
                fwrite(json.data, 1, json.len, spool->file) == json.len;
    if (!fine) complain("changes cannot be put aside in a temporary file: %m");
    spool->count++;
    return fine;
}

bool spool_rewind(struct spool *spool)
{
    if (!spool->file) return true;
    if (fflush(spool->file) == 0 && fseek(spool->file, 0, SEEK_SET) == 0) return true;
    complain("the temporary file with changes cannot be read: %m");
    return false;
}

bool spool_next(struct spool *spool, struct slice *json)
{
    uint64_t len;
    if (!spool->file || fread(&len, sizeof len, 1, spool->file) != 1) return false;
    spool->text.len = 0;
    buf_reserve(&spool->text, len);
    spool->text.len = fread(spool->text.data, 1, len, spool->file);
    *json = buf_view(&spool->text);
    if (json->len == len) return true;
    complain("the temporary file with changes cannot be read: %m");
    return false;
}

bool spool_failed(const struct spool *spool)
{
    return spool->file && ferror(spool->file);
}

void spool_free(struct spool *spool)
{
    if (spool->file) fclose(spool->file);
    buf_free(&spool->text);
    *spool = (struct spool){0};
}
