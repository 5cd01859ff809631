include(${CMAKE_CURRENT_LIST_DIR}/cpu_fixture.cmake)
