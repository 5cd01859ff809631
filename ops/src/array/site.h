/* Where the program's calls on arrays come from, for profiles and findings of HAL_SANITIZE. */
#ifndef OPS_SRC_ARRAY_SITE_H
#define OPS_SRC_ARRAY_SITE_H

#include <ops/array.h>

#include <stdbool.h>

/* A site that was seen, once each. */
typedef struct ops_kept_site {
    char *file; /* owned by the first one of the file */
    uint32_t line;
    bool owns_file;
} ops_kept_site;

typedef struct ops_sites {
    ops_site_function function; /* asked for each array; null: `now` counts */
    void *user;
    uint32_t now; /* number of the site of the calls that follow; 0: not known */
    ops_kept_site *items;
    uint32_t count, capacity;
    uint32_t *slots; /* numbers of sites by hash; 0: free */
    uint32_t slot_count;
} ops_sites;

/* The number of a site, which is kept; 0 without host memory, and for no file. */
uint32_t ops_sites_number(ops_sites *sites, ops_site site);

/* The number for an array that is made now. */
static inline uint32_t ops_sites_now(ops_sites *sites)
{
    return sites->function ? ops_sites_number(sites, sites->function(sites->user)) : sites->now;
}

/* The site of a number, whose file is the part of its path after the last slash; null for 0. */
ops_site ops_sites_get(const ops_sites *sites, uint32_t number);

void ops_sites_free(ops_sites *sites);

#endif
