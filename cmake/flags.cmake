# Language, warnings and sanitizers for every target of the tree.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ${PROJECT_IS_TOP_LEVEL})

# Assertions stay on: they hold invariants of the code, never a caller's input. Debug information has
# functions and lines, for stack traces and profiles; variables and types, which the Debug build
# has, take a fifth of the compiler's time. So does what -O2 adds where sanitizers instrument all code.
if(HAL_SANITIZE)
    set(CMAKE_C_FLAGS_RELEASE "-O1 -g1")
else()
    set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
endif()

add_compile_definitions(_GNU_SOURCE)
add_compile_options(
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla
    -Wpointer-arith -Wwrite-strings
    # A contracted a*b+c would differ between compilers and devices.
    -ffp-contract=off
    # A large frame on a small stack meets the guard page instead of stepping over it.
    $<$<NOT:$<PLATFORM_ID:Darwin>>:-fstack-clash-protection>)
# Of libraries and plugins, which run on their callers' stacks (docs/embedding.md). Sanitizers and
# builds without optimisation have larger frames.
set(HAL_FRAME_FLAGS $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-Wframe-larger-than=8192>)
if(HAL_SANITIZE)
    set(HAL_FRAME_FLAGS)
endif()
if(HAL_WERROR)
    add_compile_options(-Werror)
endif()

if(HAL_SANITIZE)
    add_compile_options(-fsanitize=${HAL_SANITIZE} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${HAL_SANITIZE})
    # The code asks by gcc's names, which gcc defines itself.
    if(CMAKE_C_COMPILER_ID MATCHES Clang)
        foreach(sanitizer address thread)
            if(HAL_SANITIZE MATCHES ${sanitizer})
                string(TOUPPER __SANITIZE_${sanitizer}__ name)
                add_compile_definitions(${name}=1)
            endif()
        endforeach()
    endif()
elseif(NOT APPLE) # whose linker refuses it by itself
    # A library that forgets a dependency fails here and not in its user's program.
    # (Sanitized shared objects find their run-time library in the program.)
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-Wl,-z,defs>
                     $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>:-Wl,-z,defs>)
endif()
