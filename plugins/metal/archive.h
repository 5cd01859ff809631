/* Binaries of pipelines in hal's cache. */
#ifndef PLUGINS_METAL_ARCHIVE_H
#define PLUGINS_METAL_ARCHIVE_H

#include "card.h"

/* A pipeline of a text, from the binary in hal's cache where there is one. */
hal_status metal_pipeline_create(const metal_card *card, const char *name,
                                 const metal_pipeline_request *request, metal_pipeline_facts *facts,
                                 metal_pipeline **pipeline);

#endif
