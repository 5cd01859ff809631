# The parts of hal-conformance that the test holds to account.
set(room ${PROJECT_SOURCE_DIR}/conformance)
target_sources(${test} PRIVATE
    ${room}/reference.c ${room}/number.c ${room}/ulp.c ${room}/redzone.c ${room}/random.c
    ${room}/expect.c ${room}/case.c)
target_include_directories(${test} PRIVATE ${room} ${PROJECT_SOURCE_DIR}/ops/include)
