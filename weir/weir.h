#pragma once
// What an application includes.

#include <weir/runtime/node.h>
