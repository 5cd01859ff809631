// The shapes that operands of gradient operators have. call.cpp checks them before a formula, which
// may broadcast, reshape or read what does not belong together, and before the processor's kernel,
// some of which read beyond their operands.
#pragma once

#include "call.h"

namespace halyard
{

// The operands of one call, for messages with the names that the operator's schema has.
class Operands
{
  public:
    Operands(const Call &call, const c10::FunctionSchema &schema) : c(call), schema_(schema)
    {
    }

    // Each raises unless the operand is absent or fits.
    void require_shape(size_t index, at::IntArrayRef shape) const;
    void require_like(size_t index, size_t other) const;
    void require_count(size_t index, int64_t count) const;
    // Has the shape of another one after broadcasting.
    void require_expandable(size_t index, size_t other) const;
    // Raises unless the operand is there.
    void require(size_t index) const;

    const Call &c;

  private:
    void fail(size_t index, const std::string &expected) const;

    const c10::FunctionSchema &schema_;
};

// Raises where shapes do not fit. Null for operators whose formulas look for themselves, and for
// those that broadcast their operands.
using ShapeRule = void (*)(const Operands &);
ShapeRule shape_rule_of(const std::string &name);

} // namespace halyard
