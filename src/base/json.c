/* SPDX-License-Identifier: Apache-2.0 */
/* base: JSON reader and writer over yajl. */
#include <yajl/yajl_common.h>

#include "src/base/json.h"
