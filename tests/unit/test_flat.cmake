if(NOT HAL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME flat_thousand COMMAND ${test} 1000)
    set_tests_properties(flat_thousand PROPERTIES TIMEOUT 300 LABELS long)
endif()
