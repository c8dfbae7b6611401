#include "fabric/nccl/kernels.h"

namespace netcheck::fabric::nccl {

namespace {

/// PTX 6.0 and sm_70: drivers since CUDA 9 take it, and compile it for every later GPU.
constexpr const char* kHead = R"(.version 6.0
.target sm_70
.address_size 64
)";

/// %rd4: the element, from the thread's own on by the grid's size; %r8: its place in the period.
constexpr const char* kBegin = R"(
  .reg .pred %p<4>;
  .reg .b32 %r<13>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [buffer];
  ld.param.u64 %rd2, [elements];
  ld.param.u64 %rd3, [table];
  ld.param.u32 %r1, [period];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd3, %rd3;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r7, %r6, %r3;
  rem.u32 %r8, %r5, %r1;
  rem.u32 %r9, %r7, %r1;
  cvt.u64.u32 %rd4, %r5;
  cvt.u64.u32 %rd5, %r7;
loop:
  setp.ge.u64 %p1, %rd4, %rd2;
  @%p1 bra end;
  mul.wide.u32 %rd6, %r8, WIDTH;
  add.u64 %rd6, %rd3, %rd6;
  ld.global.uBITS %r10, [%rd6];
  mul.lo.u64 %rd7, %rd4, WIDTH;
  add.u64 %rd7, %rd1, %rd7;
)";

constexpr const char* kNext = R"(
  add.u64 %rd4, %rd4, %rd5;
  add.u32 %r8, %r8, %r9;
  setp.ge.u32 %p2, %r8, %r1;
  @%p2 sub.u32 %r8, %r8, %r1;
  bra loop;
end:
)";

std::string fill_kernel() {
  return std::string(R"(
.visible .entry netcheck_fill_WIDTH(
  .param .u64 buffer, .param .u64 elements, .param .u64 table, .param .u32 period)
{)") + kBegin +
         R"(  st.global.uBITS [%rd7], %r10;)" + kNext + R"(  ret;
}
)";
}

std::string count_kernel() {
  return std::string(R"(
.visible .entry netcheck_count_WIDTH(
  .param .u64 buffer, .param .u64 elements, .param .u64 table, .param .u32 period, .param .u64 counter)
{
  .reg .b64 %wrong, %counter;
  mov.u64 %wrong, 0;)") +
         kBegin + R"(  ld.global.uBITS %r11, [%rd7];
  setp.ne.u32 %p3, %r10, %r11;
  @%p3 add.u64 %wrong, %wrong, 1;)" +
         kNext + R"(  setp.eq.u64 %p1, %wrong, 0;
  @%p1 ret;
  ld.param.u64 %counter, [counter];
  cvta.to.global.u64 %counter, %counter;
  red.global.add.u64 [%counter], %wrong;
  ret;
}
)";
}

void replace(std::string& text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

}  // namespace

std::string kernel_name(const char* kernel, std::size_t width) {
  return std::string(kernel) + "_" + std::to_string(width);
}

std::string kernels_ptx() {
  std::string text = kHead;
  for (const std::size_t width : kWidths) {
    std::string kernels = fill_kernel() + count_kernel();
    replace(kernels, "WIDTH", std::to_string(width));
    replace(kernels, "BITS", std::to_string(width * 8));
    text += kernels;
  }
  return text;
}

}  // namespace netcheck::fabric::nccl
